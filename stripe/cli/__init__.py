"""The command lines: `start` has the entry points, `arguments` the options, `commands` the work behind them."""
