from perdure.agents.runner import main

main()
