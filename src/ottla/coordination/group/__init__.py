"""The group coordinator: who belongs to which consumer group, what each member reads, and how far it got."""
