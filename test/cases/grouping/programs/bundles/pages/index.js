import { createElement, useEffect } from 'react'

export default function Page() {
  useEffect(() => {
    import('../src/main.js')
  }, [])
  return createElement('p', null, 'Shop')
}
