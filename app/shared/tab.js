// Writes the address of this tab without an entry in the history: Back goes to the page before.
// The server cannot: what it writes through st.query_params is pushed.
export default function ({ data }) {
  const wanted = new URLSearchParams(data.query)
  for (const [name, value] of new URLSearchParams(window.location.search)) {
    if (name.startsWith("embed")) wanted.append(name, value) // Streamlit's own
  }
  const query = wanted.size ? `?${wanted}` : ""
  if (window.location.search !== query) {
    const { pathname, hash } = window.location
    window.history.replaceState(window.history.state, "", pathname + query + hash)
  }
}
