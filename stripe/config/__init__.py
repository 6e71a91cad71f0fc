"""Configuration: JSON5, templates in the sandbox, parameters, the finding of files.

Hardware models and pass lists are files of this kind. Import from the modules: pydantic and Jinja load with them.
"""
