"""Jobs as plain processes of the host. See ``execution`` for what a job gets, and ``keeper`` for who watches it."""
