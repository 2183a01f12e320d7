/** What is known of the data a tool gives and takes. Left out means unknown, which the guard takes for the worst. */
export interface TrustLabels {
  /** it brings in what strangers wrote */
  public_source?: TrustLabel | undefined
  /** it brings in what must not get out */
  secret_data?: TrustLabel | undefined
  /** what goes in can be seen outside */
  public_sink?: TrustLabel | undefined
  /** it changes what cannot be changed back */
  dangerous_writes?: TrustLabel | undefined
}
type TrustLabel = 'yes' | 'no' | 'forbidden'
