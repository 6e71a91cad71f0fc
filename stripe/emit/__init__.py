"""Programs in other forms: `targets` lists them, `loops` plans the loops of code, `c` writes C, `library` folders of it."""
