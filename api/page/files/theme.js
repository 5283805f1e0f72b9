// Light or dark: as the system says until the switch is used; then as it was left.

const KEY = "trimtab.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

const current = () => localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light");

/** Wire the switch; `changed()` is called after each change. */
export function wireTheme(button, changed) {
  const apply = () => {
    document.documentElement.dataset.theme = current();
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${button.textContent.toLowerCase()} colours`);
    changed();
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, current() === "dark" ? "light" : "dark");
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}
