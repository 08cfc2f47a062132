"""Who runs what: decisions as functions of what the topics say."""
