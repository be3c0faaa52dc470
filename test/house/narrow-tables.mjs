import { printers as markdown, parsers } from 'prettier/plugins/markdown'

/** A plugin of Prettier, which pads the cells of every table. It leaves a table unpadded if its rows would be wider than a line. */
export default {
  parsers,
  printers: {
    mdast: {
      ...markdown.mdast,
      print: (path, options, print) =>
        markdown.mdast.print(path, path.node.type === 'table' ? { ...options, proseWrap: 'never' } : options, print),
    },
  },
}
