"""The demo: four plants with wrong labels train one model, and a page shows what came of it."""
