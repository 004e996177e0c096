// Whether an alert still asks for a person, and what its end says.

import { nameOf } from './health.js';

/** It reports that a trouble is over, or its session ended well or by a person's act. `row`: the session, where it is known. */
export const isOver = (alert, row) => alert.kind !== 'alert' || ['completed', 'cancelled'].includes(row?.lifecycle);

/** The alerts that a person can still answer: of each session the newest one, while its trouble lasts. `alerts`: the newest first. */
export function openAlerts(alerts, rowOf) {
  const seen = new Set();
  return alerts.filter((alert) => {
    const isNewest = !seen.has(alert.sessionId);
    seen.add(alert.sessionId);
    return isNewest && !alert.acknowledged && !isOver(alert, rowOf(alert.sessionId));
  });
}

/** How a session was when its trouble was over. A health that says nothing yet is left out. */
export const recoveryOf = ({ health }) => (['unknown', 'starting'].includes(health) ? 'The trouble is over' : `The trouble is over; now ${nameOf(health)}`);
