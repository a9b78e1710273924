// Tells the style sheet that scripts run.
document.documentElement.classList.add("htmx");
