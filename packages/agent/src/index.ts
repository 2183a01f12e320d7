export { bundleIfStale, bundlePath } from '../bundle.ts'
