"""Plans: every statement that erases a person, corrects one, or ends a retention."""
