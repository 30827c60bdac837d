// Twenty tests of the shop: two fail on purpose, one is flaky on purpose.
const { test, expect } = require("@playwright/test");

test.describe("pages", () => {
  for (const [path, title] of [
    ["/login", "Sign in"],
    ["/checkout", "Checkout"],
    ["/orders", "Orders"],
    ["/stock", "Stock"],
    ["/upload", "Upload a picture"],
    ["/slow?seconds=0", "Slow page"],
    ["/nowhere", "Not found"],
  ])
    test(`${path} has its title`, async ({ request }) => {
      expect(await (await request.get(path)).text()).toContain(`<title>${title}</title>`);
    });
});

test.describe("orders", () => {
  for (const article of ["Lamp", "Chair", "Desk", "Rug"])
    test(`${article} is in the table`, async ({ request }) => {
      expect(await (await request.get("/orders")).text()).toContain(`<td>${article}</td>`);
    });
  for (const [name, city] of [
    ["Grace", "London"],
    ["Alan", "Wilmslow"],
  ])
    test(`${name} orders`, async ({ page }) => {
      await page.goto("/checkout");
      await page.getByLabel("Name").fill(name);
      await page.getByLabel("City").fill(city);
      await page.getByRole("button", { name: "Order" }).click();
      await expect(page.locator("main")).toContainText(city);
    });
  test("a lamp costs 39.90", async ({ request }) => {
    expect(await (await request.get("/orders")).text()).toContain("<td>Lamp</td><td>39.90</td>");
  });
  test("a piano is sold", async ({ page }) => {
    await page.goto("/orders");
    await expect(page.locator("tbody")).toContainText("Piano");
  });
});

test.describe("account", () => {
  const signIn = async (page, password) => {
    await page.goto("/login");
    await page.getByLabel("User").fill("ada");
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  test("ada is welcomed", async ({ page }) => {
    await signIn(page, "lovelace");
    await expect(page.getByRole("heading", { level: 2 })).toHaveText("Welcome Ada");
  });
  test("a wrong password is refused", async ({ page }) => {
    await signIn(page, "babbage");
    await expect(page.getByRole("heading", { level: 2 })).toHaveText("Wrong password");
  });
  test("eve is welcomed", async ({ page }) => {
    await signIn(page, "lovelace");
    await expect(page.getByRole("heading", { level: 2 })).toHaveText("Welcome Eve");
  });
  test("health is fine", async ({ request }) => {
    expect(await (await request.get("/health")).text()).toBe("all fine");
  });
});

test("the widget shows the stock", async ({ page, request }, info) => {
  // The widget fails every second time: the first attempt meets the failing one.
  if (info.retry === 0) await request.post("/reset");
  await page.goto("/stock");
  await expect(page.locator("#widget")).toHaveText("In stock: 7");
});
