import { computed, signal } from '@preact/signals'

const SETTING = 'penstock.theme'

/** A theme, or that of the system. */
export type Theme = 'system' | 'light' | 'dark'

/** The chosen theme. */
export const theme = signal<Theme>(readTheme())

const system = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(system.matches)
system.addEventListener('change', () => {
  isSystemDark.value = system.matches
})

/** Whether the page is dark. What is drawn on a canvas is drawn again when it changes. */
export const isDark = computed(() => (theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'))

function readTheme(): Theme {
  const kept = localStorage.getItem(SETTING)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Chooses a theme for this browser. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  localStorage.setItem(SETTING, chosen)
  applyTheme()
}

/** Applies the chosen theme to the document. */
export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
}
