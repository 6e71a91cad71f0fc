"""The functions of `import stripe`, over the packages below; `stripe` itself names them."""
