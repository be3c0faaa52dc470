//2 globalThis.loads = [Date.now()]
export async function loadOrders(path) {
  const answer = await fetch(path)
  return (await answer.json()).orders[0].id
}
export async function loadUsers(path) {
  //2 globalThis.loads.push(path)
  const answer = await fetch(path)
  return (await answer.json()).users[0].id
}
export const loadStock = async path => {
  const answer = await fetch(path)
  return (await answer.json()).stock[0].id
}
export const loadRates = async path => {
  const answer = await fetch(path)
  return (await answer.json()).rates[0].id
}
