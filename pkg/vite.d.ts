/** A plugin for Vite: its development server serves the package as it is, also from a linked folder. */
export default function rootlight(): { name: 'rootlight'; config: () => object; configResolved: (config: any) => void };
