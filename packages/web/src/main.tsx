import './styles/base.css'
import './styles/shell.css'
import './styles/parts.css'
import './styles/chat.css'
import './styles/pages.css'
import { createRoot } from 'react-dom/client'
import { App } from './shell/app.tsx'
import { applyTheme } from './shell/theme.ts'

applyTheme()
const place = document.getElementById('console')
if (place) createRoot(place).render(<App />)
