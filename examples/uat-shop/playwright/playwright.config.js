// Run with: SHOP=http://127.0.0.1:8765 npx playwright test   then: holdfast uat import results.json
module.exports = {
  testDir: __dirname,
  retries: 1,
  workers: 1,
  outputDir: "test-results",
  reporter: [["json", { outputFile: "results.json" }], ["junit", { outputFile: "results.xml" }]],
  timeout: 10000,
  expect: { timeout: 1000 },
  use: {
    baseURL: process.env.SHOP || "http://127.0.0.1:8765",
    screenshot: "only-on-failure",
    trace: "on-first-retry",
    launchOptions: { executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] },
  },
};
