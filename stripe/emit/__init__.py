"""Programs in other forms: `targets` lists them, `loops` plans loops, `c` writes C, and `library` folders of C."""
