"""Officers, roles, API keys, sign-in."""
