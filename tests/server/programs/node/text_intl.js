// Intl, time zones, locales, sorting.
// Also as a cell of a context.
const moment = new Date(Date.UTC(2024, 9, 27, 0, 30));
console.log(moment.toISOString(), new Intl.DateTimeFormat('de-DE', { dateStyle: 'full', timeStyle: 'short', timeZone: 'Europe/Berlin' }).format(moment));
console.log(new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' }).format(1234.5), (1e6).toLocaleString(), ['z', 'ä', 'a'].sort(new Intl.Collator('de').compare));
process.env.TZ = 'America/New_York';
console.log(moment.getHours(), moment.getTimezoneOffset(), String(new Date(0)));
process.env.TZ = 'UTC';
console.log(new Intl.PluralRules('en').select(1), new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day'), 'İ'.toLocaleLowerCase('tr').length);
