"""Subject requests: intake, clock, approval, execution, completion."""
