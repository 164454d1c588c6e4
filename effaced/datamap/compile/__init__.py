"""The parts of the SQL that a map is compiled to: whose row it is, in which order, with which locks."""
