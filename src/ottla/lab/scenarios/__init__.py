"""The troubles, one module for each question. Each has a healthy twin: the same actors without the fault."""
