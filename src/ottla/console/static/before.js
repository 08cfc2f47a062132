// Before anything is painted: the theme that was chosen here before.
try {
  const chosen = localStorage.getItem("ottla-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch { /* Without storage, the system decides. */ }
