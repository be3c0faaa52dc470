/* The recorded pages do this by themselves; what they do as clients of Penstock is in recorder.js. */
const basket = document.querySelector('#basket')

document.querySelector('#add').addEventListener('click', () => {
  for (const item of basket.children) item.classList.remove('fresh')
  const item = document.createElement('li')
  item.className = 'fresh'
  item.textContent = `Item ${basket.children.length + 1} — “größer & <cheaper>”`
  basket.append(item)
})

document.querySelector('#remove')?.addEventListener('click', () => basket.lastElementChild?.remove())

document.querySelector('#sign-in')?.addEventListener('submit', submitted => {
  submitted.preventDefault()
  const { name, email } = Object.fromEntries(new FormData(submitted.target))
  void recorder.identify(name, email).then(() => {
    document.querySelector('#greeting').textContent = `Good day, ${name}`
  })
})
