"""From evidence to causes: one module for each question, pure, a decision tree that reads as one."""
