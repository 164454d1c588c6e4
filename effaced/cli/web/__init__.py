"""The web server that `effaced web` runs: gunicorn, with a worker of our own."""
