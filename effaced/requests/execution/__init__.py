"""Steps of executing a request: read the person, change your database, work out the external calls."""
