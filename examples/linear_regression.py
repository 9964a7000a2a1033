"""Linear regression by gradient descent, the gradient written by hand."""

from heterosis import np

np.random.seed(0)
true_w, true_b = np.array([2, -3.4]), 4.2
features = np.random.normal(0, 1, size=(1000, 2))
labels = np.dot(features, true_w) + true_b + np.random.normal(0, 0.01, size=(1000,))

w, b = np.zeros(2), np.zeros(1)
for epoch in range(3):
    for start in range(0, 1000, 10):
        x, y = features[start : start + 10], labels[start : start + 10]
        error = np.dot(x, w) + b - y
        w -= 0.03 * np.dot(error, x) / 10
        b -= 0.03 * error.mean()
    loss = ((np.dot(features, w) + b - labels) ** 2 / 2).mean()
    print(f"epoch {epoch + 1}, loss {loss.item():f}")

print("w:", w, "instead of", true_w)
print("b:", b, "instead of", true_b)
