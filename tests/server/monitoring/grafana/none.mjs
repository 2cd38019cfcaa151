export default {}; // Grafana's editor of queries, which no panel shows
