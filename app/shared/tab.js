// What of this tab Streamlit leaves to us: its address, what was clicked in a chart or a table, and
// light or dark on all pages.
export default function ({ data, setTriggerValue }) {
  // A fragment, such as a drawer, writes the address too, between two runs of the page.
  if (!data.pages) return writeInTurn(data)
  // A server that was started anew knows nothing of this tab, and Streamlit asks it with the address
  // that the tab was opened at. The browser has the true one: turns of a session only grow.
  const [turn] = data.turn
  const known = window.masktuneTurn ?? 0
  window.masktuneTurn = turn
  if (turn < known) return window.location.reload()
  if (!ask) listen()
  ask = setTriggerValue
  writeInTurn(data)
  themeFor(data.pages)
  // Dialogs lie outside the app, where Streamlit says neither light nor dark.
  const { colorScheme } = getComputedStyle(document.querySelector(".stApp"))
  document.documentElement.style.colorScheme = colorScheme
}

let ask = null // tells the server: "shown" or "picture", and which; "k", and how large
let newest = [0, 0] // the run of the page, and of a fragment after it, that was last to write
let query = "" // what that was to write
let path = "" // of the page that it was written on
let leaving = false // the entry of a drawer: Back was asked for and has not come yet

const shownIn = (search) => new URLSearchParams(search).get("shown") ?? ""

// What is drawn late, or again, may know less than what has been written meanwhile: a drawer that was
// closed before it was all there would open again.
function writeInTurn({ turn, query }) {
  const [run, fragment] = turn
  if (run < newest[0] || (run === newest[0] && fragment <= newest[1])) return
  newest = turn
  writeAddress(query)
}

// Without an entry in the history: Back goes to the page before. The server cannot: what it writes
// through st.query_params is pushed. Only an open drawer has an entry, so that Back closes it.
function writeAddress(written) {
  query = written
  path = window.location.pathname
  if (leaving) return // `moved` writes it; another Back would leave the page
  const wanted = new URLSearchParams(written)
  for (const [name, value] of new URLSearchParams(window.location.search)) {
    if (name.startsWith("embed")) wanted.append(name, value) // Streamlit's own
  }
  const search = wanted.size ? `?${wanted}` : ""
  if (window.location.search === search) return
  const { state } = window.history
  const [was, now] = [shownIn(window.location.search), shownIn(search)]
  if (was && !now && state?.drawer) {
    leaving = true
    return window.history.back() // and `moved` writes the rest
  }
  const address = window.location.pathname + search + window.location.hash
  if (now && !was) window.history.pushState({ ...state, drawer: true }, "", address)
  else window.history.replaceState(state, "", address)
}

// Before Streamlit hears of it, which would run the page as if it had just been opened.
function moved(event) {
  const left = leaving
  leaving = false
  if (window.location.pathname !== path) return
  event.stopImmediatePropagation()
  const shown = shownIn(window.location.search)
  if (left || shown === shownIn(query)) writeAddress(query)
  else ask("shown", shown)
}

function listen() {
  window.addEventListener("popstate", moved, true)
  document.addEventListener("click", follow)
  document.addEventListener("keydown", ({ key }) => key === "Tab" && reach(), true)
  for (const before of ["pointerdown", "focusin"]) document.addEventListener(before, prepare, true)
}

const markOf = (target) => target.closest?.("a.mark, a.picture")
const named = (link) => (link.classList.contains("mark") ? "shown" : "picture")
const valueOf = (link) => new URL(link.href).searchParams.get(named(link))

// A link to pictures or to one picture stays in this session; in a new tab it is a whole address.
function follow(event) {
  const link = markOf(event.target)
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  ask(named(link), valueOf(link))
}

function prepare(event) {
  const link = markOf(event.target)
  if (link) {
    const whole = new URLSearchParams(window.location.search)
    whole.delete("shown")
    whole.set(named(link), valueOf(link))
    link.href = `${link.href.split("?")[0]}?${whole}`
  }
  // A chart is known once somebody touches it. Plotly tells of a click as often as it is clicked; a
  // selection of Streamlit's would tell of every second click on the same mark, and of no line.
  const chart = event.target.closest?.(".js-plotly-plot")
  if (chart?.on && !chart.masktune) {
    chart.masktune = true
    chart.on("plotly_click", ({ points }) => {
      const [found] = points.map((point) => point.customdata).filter((one) => one != null)
      if (found !== undefined) ask(typeof found === "number" ? "k" : "shown", found)
    })
  }
}

// What scrolls sideways is reached by keys: made a stop of Tab as Tab is pressed, for only then it is
// known which do at this width, and Streamlit's own boxes take no attributes.
function reach() {
  for (const box of document.querySelectorAll('[class*="st-key-chart_"], .mt .wide, .mt .sheet')) {
    if (box.scrollWidth <= box.clientWidth + 1) {
      box.removeAttribute("tabindex")
      continue
    }
    box.tabIndex = 0
    box.setAttribute("role", "group")
    const card = box.closest('[class*="st-key-card_"]')
    const name = box.querySelector("table")?.ariaLabel ?? card?.querySelector("h2, h3")?.textContent
    box.ariaLabel = `${name ?? "More"}, scrolls sideways`
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
  for (const name of pages) {
    const key = keyOf(opened.replace(/[^/]*$/, name))
    if (chosen === null) localStorage.removeItem(key) // as the computer has it
    else localStorage.setItem(key, chosen)
  }
}
