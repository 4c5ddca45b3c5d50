from perdure.agents.shim import main

main()
