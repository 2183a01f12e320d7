/** Small drawings on a field of 24 by 24, in the colour of the words beside them. */
const drawings = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z',
  chat: 'M4 5h16v11H9l-5 4z',
  traffic: 'M3 12h4l3-8 4 16 3-8h4',
  tasks: 'M5 5h14v15H5zM5 9h14M9 3v4M15 3v4M9 14l2 2 4-4',
  groups:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 2.7-6 6-6s6 2 6 6M16 4.5a3.5 3.5 0 0 1 0 6.5M17 14.5c2.5.7 4 2.6 4 5.5',
  channels: 'M5 4h14v12h-7l-4 4v-4H5zM9 9h6M9 12h4',
  models: 'M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4',
  approvals: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM9 12l2 2 4-4',
  errors: 'M12 4l9 16H3zM12 10v4M12 17v.2',
  audit: 'M6 3h9l4 4v14H6zM9 11h7M9 15h7M9 7h3',
  runs: 'M7 4.500v15l12-7.500z',
  settings:
    'M4 7h9M17 7h3M4 17h3M11 17h9M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  more: 'M5 12h.1M12 12h.1M19 12h.1',
  close: 'M6 6l12 12M18 6L6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5',
  pause: 'M8 5v14M16 5v14',
  play: 'M8 5v14l11-7z',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  clip: 'M20 11.5 12 19.500a5 5 0 0 1-7-7l8.5-8.500a3.3 3.3 0 0 1 4.7 4.700L9.7 17.200a1.7 1.7 0 0 1-2.4-2.400l7.5-7.5',
  plus: 'M12 5v14M5 12h14',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.400M5.6 18.4 7 17M17 7l1.4-1.4',
  moon: 'M20 14.500A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.500z',
  screen: 'M4 5h16v11H4zM9 20h6M12 16v4',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  keys: 'M3 7h18v11H3zM7 11h.1M11 11h.1M15 11h.1M8 15h8',
  again: 'M5 12a7 7 0 1 0 2.2-5.100M5 4v4h4',
} as const

export type IconName = keyof typeof drawings

export const Icon = ({ name, size = 20 }: { name: IconName; size?: number }) => (
  <svg className="icon" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" focusable="false">
    <path
      d={drawings[name]}
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 3 : 1.7}
      strokeLinecap="round"
      strokeLinejoin="round"
    />
  </svg>
)
