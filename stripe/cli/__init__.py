"""The command lines; each module has `main(argv=None) -> int` and nothing else imports them."""
