/** A text that must not leave the page. */
export const SECRET = 'S3CRET'
/** A text that may. */
export const PUBLIC = 'PUBL1C'

const TYPES = [
  'text',
  'password',
  'email',
  'tel',
  'search',
  'url',
  'number',
  'date',
  'hidden',
  'color',
  'month',
  'range',
]
const SAMPLES: Readonly<Record<string, string>> = {
  number: '41111111',
  date: '1971-04-11',
  color: '#411111',
  month: '1971-04',
  range: '41',
}
/** Values of inputs that have a form of their own. */
export const FORMED = ['41111111', '1971-04-11', '4111 1111 1111 1111']

/** Elements with secrets in every place that a recorder reads. */
export const MASKED_PAGE = `
<h1>${PUBLIC}</h1>
<form>
  ${TYPES.map(type => `<input id="in-${type}" type="${type}" value="${SAMPLES[type] ?? `${SECRET}-${type}`}">`).join('\n')}
  <input id="card" autocomplete="cc-number" value="4111 1111 1111 1111">
  <textarea id="area">${SECRET}-area</textarea>
  <select id="select"><option value="${SECRET}-option">${PUBLIC}</option><option value="${SECRET}-other" selected>other</option></select>
</form>
<div id="editable" contenteditable>${SECRET}-editable <b title="${SECRET}-title">${SECRET}-bold</b></div>
<section data-penstock-mask title="${SECRET}-title" aria-label="${SECRET}-label">
  ${SECRET}-text <img alt="${SECRET}-alt" src="/api/picture?${SECRET}"> <a href="/api/x?${SECRET}">${SECRET}-link</a>
  <p id="masked">${SECRET}-nested</p><input placeholder="${SECRET}-placeholder"><div id="host"></div>
  <iframe id="frame" srcdoc="&lt;p title='${SECRET}-frame'&gt;${SECRET}-frame&lt;/p&gt;"></iframe>
</section>
<section data-penstock-block><p>${SECRET}-blocked</p><input value="${SECRET}-blocked"></section>
<section class="private"><p id="private" title="${SECRET}-title">${SECRET}-private</p></section>
<p id="open">${PUBLIC}-open</p>`

/** Changes what is masked in every way that a page can. Runs in the page. */
export const CHANGE_MASKED_PAGE = `(async () => {
  const turn = () => new Promise(resolve => setTimeout(resolve, 30))
  const find = id => document.getElementById(id)
  for (const input of document.querySelectorAll('input, textarea')) {
    if (['color', 'date', 'month', 'range', 'number'].includes(input.type)) continue
    input.value = '${SECRET}-typed-' + input.type
    input.dispatchEvent(new Event('input', { bubbles: true }))
  }
  await turn()
  find('in-password').type = 'text'
  find('in-password').setAttribute('value', '${SECRET}-shown')
  await turn()
  find('in-hidden').setAttribute('value', '${SECRET}-changed')
  find('area').textContent = '${SECRET}-area-2'
  find('masked').textContent = '${SECRET}-changed'
  find('masked').firstChild.data = '${SECRET}-data'
  find('masked').title = '${SECRET}-title-2'
  find('masked').setAttribute('data-name', '${SECRET}-data-name')
  find('private').textContent = '${SECRET}-private-2'
  find('private').setAttribute('aria-label', '${SECRET}-label-2')
  find('editable').innerHTML = '${SECRET}-edited <i alt="${SECRET}-alt">${SECRET}-italic</i>'
  await turn()
  const shadow = find('host').attachShadow({ mode: 'open' })
  shadow.innerHTML = '<p title="${SECRET}-shadow">${SECRET}-shadow</p><input value="${SECRET}-shadow">'
  await turn()
  shadow.querySelector('p').textContent = '${SECRET}-shadow-2'
  const added = document.createElement('div')
  added.setAttribute('data-penstock-mask', '')
  added.innerHTML = '${SECRET}-added <span aria-label="${SECRET}-added">${SECRET}-span</span><textarea>${SECRET}-new</textarea>'
  document.body.append(added)
  find('open').textContent = '${PUBLIC}-changed'
  await turn()
  added.querySelector('span').append(' ${SECRET}-appended')
  find('frame').contentDocument.body.append('${SECRET}-in-frame')
  await turn()
})()`
