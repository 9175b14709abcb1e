"""Logs of other tools, one module a format: records become calls with token counts in the normal form."""
