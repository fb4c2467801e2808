// The driver's clock: all times that are shown are of it, and this browser's may differ by minutes.

let ahead_ms = 0;

/** A frame told the driver's time. */
export const told = (now_ms) => void (ahead_ms = now_ms - Date.now());

/** A moment of this browser's clock as the driver's would have it. */
export const at_driver = (ms) => ms + ahead_ms;

/** The driver's time now. */
export const now = () => at_driver(Date.now());
