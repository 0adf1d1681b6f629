// Copies the address of this view; where the browser forbids that, shows it to be copied by hand.
// What the link leaves out is said before and after.
export default function ({ parentElement, data }) {
  const without = data.without && `, without ${data.without}`
  const [button, said, address] = ["button", "output", "input"].map((name) =>
    parentElement.querySelector(name),
  )
  button.title = `Copy a link to this view${without}`
  button.onclick = async () => {
    address.hidden = true
    try {
      await navigator.clipboard.writeText(window.location.href)
      said.textContent = `Link copied${without}`
      said.parentElement.hidden = false
    } catch {
      said.textContent = `Copy this link${without}:`
      address.value = window.location.href
      address.hidden = said.parentElement.hidden = false // what is hidden takes no focus
      address.focus()
      address.select()
    }
  }
  said.parentElement.onfocusout = () => (said.parentElement.hidden = true)
  button.onblur = (event) => {
    if (event.relatedTarget !== address) said.parentElement.hidden = true
  }
}
