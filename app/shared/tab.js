// What of this tab Streamlit leaves to us: its address, and light or dark on all pages.
export default function ({ data }) {
  // A server that was started anew knows nothing of this tab, and Streamlit asks it with the address
  // that the tab was opened at. The browser has the true one: turns of a session only grow.
  const turn = window.masktuneTurn ?? 0
  window.masktuneTurn = data.turn
  if (data.turn < turn) return window.location.reload()
  writeAddress(data.query)
  themeFor(data.pages)
}

// Without an entry in the history: Back goes to the page before. The server cannot: what it writes
// through st.query_params is pushed.
function writeAddress(written) {
  const wanted = new URLSearchParams(written)
  for (const [name, value] of new URLSearchParams(window.location.search)) {
    if (name.startsWith("embed")) wanted.append(name, value) // Streamlit's own
  }
  const query = wanted.size ? `?${wanted}` : ""
  if (window.location.search !== query) {
    const { pathname, hash } = window.location
    window.history.replaceState(window.history.state, "", pathname + query + hash)
  }
}

// Streamlit keeps the choice under the path that the tab was opened at, for that path alone.
const opened = new URL(performance.getEntriesByType("navigation")[0].name).pathname
const keyOf = (path) => `stActiveTheme-${path}-v2`
let pages = []
let known = localStorage.getItem(keyOf(opened))

function themeFor(names) {
  if (!pages.length) window.addEventListener("click", () => setTimeout(shareTheme))
  pages = names
  shareTheme()
}

// Only a choice of this tab: another tab's may be newer than what this one began with.
function shareTheme() {
  const chosen = localStorage.getItem(keyOf(opened))
  if (chosen === known) return
  known = chosen
  for (const name of pages) localStorage.setItem(keyOf(opened.replace(/[^/]*$/, name)), chosen)
}
