import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** One script and one style sheet, under names that change with what is in them: browsers keep them. */
export default defineConfig({
  root: import.meta.dirname,
  publicDir: 'static',
  plugins: [react()],
  build: {
    target: 'es2024',
    // Small pictures would become data: addresses, which the page's content policy does not allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/console-[hash].js',
        assetFileNames: 'assets/console-[hash][extname]',
      },
    },
  },
})
