# A web server of node on h2 that reckons with what it is sent; ten requests at once from h1.
cat >server.js <<'END'
const { createHash } = require("crypto");
require("http").createServer((request, response) => {
    const hash = createHash("sha256");
    request.on("data", piece => hash.update(piece)).on("end", () => response.end(hash.digest("hex")));
}).listen(8080, "10.9.0.2");
END
cat >client.js <<'END'
const { createHash, randomBytes } = require("crypto");
const once = number => new Promise((done, failed) => {
    const body = randomBytes(200000 + number);
    const wanted = createHash("sha256").update(body).digest("hex");
    const request = require("http").request({ host: "h2", port: 8080, method: "POST" }, response => {
        let text = "";
        response.on("data", piece => text += piece).on("end", () => done(text === wanted));
    });
    request.on("error", failed).end(body);
});
Promise.all([...Array(10).keys()].map(once)).then(all => console.log("right", all.filter(Boolean).length));
END
serve h2 node server.js
eventually listens h2 8080
node client.js
