"""The options of each command. Nothing heavy is imported here: `stripe.cli.commands` is loaded to perform one."""
