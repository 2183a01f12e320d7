// How a change stands in the changelog, which people read before they upgrade: in its own words, without commit ids.
const getReleaseLine = async ({ summary }) => `- ${summary.trim().replaceAll('\n', '\n  ')}`
// All packages have the same version, so this says nothing.
const getDependencyReleaseLine = async () => ''

export default { getReleaseLine, getDependencyReleaseLine }
