"""Books orders: reads them from one topic, writes bookings to another, each order exactly once."""
