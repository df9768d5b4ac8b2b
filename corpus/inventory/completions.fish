complete --keep-order --exclusive --command sonde --arguments "(SONDE_COMPLETE=fish sonde -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
