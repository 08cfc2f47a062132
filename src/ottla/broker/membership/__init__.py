"""The broker as a member of the cluster: registered, unfenced, and on its way out."""
