// Carries what changes often (k, the answers after hiding) past the sheet, which is large and is
// sent once. Sheet and news meet by the sheet's identity.

const MEETING = Symbol.for("masktune.scrubber");
const REMEMBERED = 8; // sheets whose news are kept while none of them is on the page

export default function ({ data }) {
  const meeting = (globalThis[MEETING] ??= { news: new Map(), ears: new Set() });
  const news = { ...meeting.news.get(data.sheet), ...data };
  meeting.news.delete(data.sheet);
  meeting.news.set(data.sheet, news);
  while (meeting.news.size > REMEMBERED) meeting.news.delete(meeting.news.keys().next().value);
  for (const ear of meeting.ears) ear(data.sheet);
}
